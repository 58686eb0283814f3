"""Programs that people have already: read from files or adopted from modelling libraries, recognised, answered.

    statement (matrix, bounds, objective, names) -> recognise -> program -> problems, batches -> answers

`hasten.programs.reading` has the file formats, `hasten.programs.adopting` the libraries, each of which is imported only
when one of its models comes. Imports `hasten.model`, `hasten.proof`, `hasten.certificates`, `hasten.solvers`,
`hasten.speedup` and the rooms below them.
"""
