"""Checks of one lab each, which replay what a student returns with the simulators of this package.

Only a lab that imports one of these modules is graded again when it changes, or the simulator that it imports.
"""
