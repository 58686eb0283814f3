"""hasten makes a trained structured predictor faster over its lifetime without losing its answers."""
