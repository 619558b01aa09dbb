"""Statements whose target is the warehouse, carried out."""
