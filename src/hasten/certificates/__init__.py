"""Certificates: proofs written down, for `hasten.certificate` to check. Imports the model and the checker."""

from hasten.certificates.writing import Certificate

__all__ = ["Certificate"]
