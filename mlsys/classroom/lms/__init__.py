"""What learning platforms hand over and take back: names of files, times, grades, and the pages for students."""
