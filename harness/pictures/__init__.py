"""Scores as pictures: tables of what is drawn, drawn by plotly where that is installed."""
