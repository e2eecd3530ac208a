# A machine for students of a class that does not use Colab: JupyterLab with the labs, alone or under JupyterHub.
# The context is the folder that `mlsys publish` wrote, with the book built, so that it has the chapters:
#
#   docker build --file images/students.Dockerfile --build-context recipe=images --tag course-students ../course-public
#   docker run --rm --gpus all --publish 127.0.0.1:8888:8888 --volume course-home:/home/student course-students \
#       jupyter lab --ip=0.0.0.0
#
# The volume keeps the student's work when the container goes.
# A GPU needs the NVIDIA Container Toolkit on the host; without one, leave out `--gpus all`.
ARG BASE=debian:bookworm-slim
FROM ${BASE}

# Triton compiles a small C file for each kernel, so a GPU needs a C compiler and Python's headers.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates gcc libc6-dev python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*

COPY --from=recipe students.txt /srv/course/
RUN python3 -m venv /opt/course && /opt/course/bin/pip install --no-cache-dir --requirement /srv/course/students.txt
COPY wheels /srv/course/wheels
RUN /opt/course/bin/pip install --no-cache-dir "$(ls /srv/course/wheels/mlsys-*.whl | sort -V | tail -1)"
COPY labs /srv/course/labs
COPY chapters /srv/course/chapters
COPY --from=recipe --chmod=755 start-student /usr/local/bin/

# The id is that of JupyterHub's own images, so that home folders can be kept.
RUN useradd --create-home --uid 1000 student
USER student
WORKDIR /home/student
# Cells are saved in the home folder before they run: a kernel that dies takes no answer with it.
ENV PATH=/opt/course/bin:$PATH MLSYS_ANSWERS=/home/student/.answers MPLBACKEND=agg
EXPOSE 8888
ENTRYPOINT ["start-student"]
CMD ["jupyterhub-singleuser"]
