"""Tasks that hasten can read, score and speed up out of the box."""
