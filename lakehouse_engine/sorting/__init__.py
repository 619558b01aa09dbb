"""Orders rows by several columns: by one column after the other, along a Z-order curve, or along a Hilbert curve."""
