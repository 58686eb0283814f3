"""Sweep: lower bounds by block coordinate ascent on the Lagrangian dual, and labellings decoded from them.

`dual` holds messages and their bound, `multipliers` those of rules, `sweeping` the loop. `hasten.proof.branch` runs it.
"""
