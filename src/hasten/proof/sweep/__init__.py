"""Sweep: lower bounds by block coordinate ascent on the Lagrangian dual, and labellings decoded from them.

`dual` holds messages and their bound, `multipliers` the prices of rules, `sweeping` the loop that `hasten.proof.branch`
runs.
"""
