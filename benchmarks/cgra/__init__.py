"""What is measured of the CGRA backend."""
