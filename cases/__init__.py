"""The domain: records, taxonomy, bundles, signal tables, traces, and `Case` over them.

`cases.truth` holds the labels' records and is never shown to a diagnoser.
"""
