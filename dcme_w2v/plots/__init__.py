"""Pictures: points in a plane, learning curves, tables of results."""
