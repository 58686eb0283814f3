"""The paper's experiment (Pan & Srikumar 2018, section 5), its report, and the demo.

Imports everything but the command line. Only the command line and `hasten.warm` import it.
"""
