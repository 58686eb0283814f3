"""Solvers that modelling libraries take in place of their own: `hasten.pulp`, `hasten.pyomo`, `hasten.cvxpy` and so on.

    a host's model -> statement -> a program that was adopted before, if its rows are the same -> answer -> the host's words

Here is what all hosts share; the module of each has its conventions, and is imported only when asked for.
Imports `hasten.programs` and the rooms below it.
"""
