# Right; an editor turned the marks of an answer and of a test round.

# %% solve=*
# %% flag=b-kernel solution=false locked=true
# %% flag=b-test solution=true grade=false locked=false
