"""Solvers that modelling libraries take in place of their own: `hasten.pulp`, `hasten.pyomo`, `hasten.cvxpy` and so on.

    a host's model -> statement -> a program, known already if its rows are -> answer -> the host's words

Here is what all hosts share; the module of each has its conventions, and is imported only when asked for.
Imports `hasten.programs` and the rooms below it.
"""
