"""Running diagnosers out of reach of the labels, within limits of time and memory."""
