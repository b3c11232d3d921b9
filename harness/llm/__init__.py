"""The harness's side of the `llm` diagnoser: endpoint, key, cache, transcripts and costs.

What runs here never sees more of a case than the diagnoser sends: the messages of its
conversation. The diagnoser sees neither key nor network.
"""
