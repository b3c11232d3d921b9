"""Breaking real jobs on purpose, and recording and labelling what happens.

Start at `injectors.scenario` (what to record), `injectors.faults` (what breaks) and
`injectors.label_rule` (what may be called faulty or healthy). torch is imported where it is used.
"""
