"""Breaking real jobs on purpose, and recording and labelling what happens."""
