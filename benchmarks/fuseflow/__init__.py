"""Whole models beside the published counts of FuseFlow [FuseFlow, Figure 12]."""
