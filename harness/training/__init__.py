"""Training the bundled diagnosers that learn: reads labels, so it never runs in the sandbox."""
