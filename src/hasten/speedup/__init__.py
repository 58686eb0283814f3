"""The product: a predictor that proves, searches, solves, learns and keeps watch over itself.

Imports `hasten.learning` and the rooms below it; tasks and the command line import it.
"""
