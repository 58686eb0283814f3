"""The product: a predictor that proves, searches, solves, learns and keeps watch over itself.

Imports every room above; tasks, benchmarks and the command line import it.
"""
