"""Reports: resources of a graph on a device, comparisons of runs, products, and the report page."""
