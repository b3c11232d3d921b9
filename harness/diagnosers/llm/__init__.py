"""A language model that looks at a case through tools and hands in a diagnosis.

Everything here runs where diagnosers run, out of reach of labels, network and key; the harness
passes messages on to the model (`harness.llm`).
"""
