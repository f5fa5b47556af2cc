# inlink in a container: docker build -t inlink . && docker run --rm -v "$PWD:/data" inlink --help

# The release workflow names the same image by its digest.
ARG BASE=python:3.13-slim

# On x86-64 and aarch64 the build compiles all kernels, which takes some minutes. On others the first commands compile.
FROM ${BASE} AS wheel
WORKDIR /inlink
COPY LICENSE README.md pyproject.toml ./
COPY ahead ahead
COPY src src
COPY website website
RUN pip wheel --no-cache-dir --no-deps --wheel-dir dist .

FROM ${BASE}
COPY --from=wheel /inlink/dist /tmp/dist
RUN case "$(uname -m)" in x86_64|aarch64) extras=plot,scrapy,server ;; *) extras=jit,plot,scrapy,server ;; esac; \
    pip install --no-cache-dir "$(echo /tmp/dist/inlink-*.whl)[$extras]" && \
    rm -r /tmp/dist && \
    useradd --create-home inlink && \
    install --directory --owner=inlink /data
USER inlink
WORKDIR /data
VOLUME /data
EXPOSE 8000
ENTRYPOINT ["inlink"]
CMD ["--help"]
