# The REST API of airflow-mm2-offsets, standalone; docs/deploy.md says how to run it.
# `make image` builds and tries it. Any base with Python 3.11 or newer and its venv module will do.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
# Further extras, such as "api,archive,cli,msk", and packages of constraints.txt, such as "s3fs".
ARG EXTRAS=api,archive,cli
ARG PACKAGES=""
ARG SOURCE_DATE_EPOCH=1577836800
WORKDIR /build
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY release/constraints.txt release/
RUN python3 -m venv tools && tools/bin/pip install --no-cache-dir --constraint constraints.txt uv
COPY airflow_mm2_offsets airflow_mm2_offsets
COPY dags dags
ENV UV_NO_CACHE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
RUN tools/bin/uv build --wheel --build-constraints release/constraints.txt --out-dir dist . \
 && tools/bin/uv venv --python "$(command -v python3)" /opt/mm2-offsets \
 && tools/bin/uv pip install --python /opt/mm2-offsets/bin/python --compile-bytecode \
    --constraint constraints.txt "$(echo dist/*.whl)[${EXTRAS}]" ${PACKAGES}

FROM ${BASE}
LABEL org.opencontainers.image.title="airflow-mm2-offsets" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/mm2-offsets /opt/mm2-offsets
COPY release/image/healthcheck.py /opt/mm2-offsets/healthcheck.py
# Nothing is written: Python's bytecode is in the image. The two arenas keep malloc from growing.
ENV PATH=/opt/mm2-offsets/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=2 \
    MM2_OFFSETS_SERVE_HOST=0.0.0.0
USER 10001:10001
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["python", "/opt/mm2-offsets/healthcheck.py"]
ENTRYPOINT ["airflow-mm2-offsets"]
CMD ["serve"]
