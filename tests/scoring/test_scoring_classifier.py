import io
import sys
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from inlink.errors import InlinkError, InputError, MissingExtraError, ParameterError
from inlink.scoring import classifier
from inlink.scoring.choose import content_scorer
from inlink.scoring.classifier import Classifier
from inlink.scoring.reading import read_page

SEA = ["cod and kelp", "the kelp of the sea", "a sea of cod", "cod"]
LAND = ["roses and oaks", "an oak in a garden", "a garden of roses", "oak"]

# Loading a model imports all of scikit-learn.
pytestmark = pytest.mark.slow


class Upper(BaseEstimator, TransformerMixin):
    def fit(self, texts, classes=None):
        return self

    def transform(self, texts):
        return [text.upper() for text in texts]


def page(text, title=""):
    return read_page(f"<title>{title}</title><body>{text}".encode(), "https://example.org/")


def dump(model, path):
    # This imports all of scikit-learn, which takes two seconds in each process that collects the tests.
    import skops.io

    skops.io.dump(model, path)


def trained(classes, *first):
    model = make_pipeline(*first, TfidfVectorizer(), LogisticRegression(C=100))
    return model.fit(SEA + LAND, [classes[0]] * 4 + [classes[1]] * 4)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.skops"
    dump(trained([1, 0]), path)
    return path


def test_a_classifier_is_trained_kept_and_asked(model):
    scorer = Classifier(model, positive=1)
    assert scorer(page("kelp and cod")) > 0.8 > 0.2 > scorer(page("roses in a garden"))
    assert scorer(page("", "cod")) > 0.8  # the title is read
    expected = trained([1, 0]).predict_proba(["Cod\nof the garden"])[0][1]
    assert scorer(page("of the garden", "Cod")) == pytest.approx(expected)
    assert 0 < scorer(page("")) < 1
    assert Classifier(model)(page("cod")) == scorer(page("cod"))  # the second of two classes
    assert Classifier(str(model), "0")(page("cod")) == pytest.approx(1 - scorer(page("cod")))
    assert content_scorer({"classifier": model, "positive": 1})(page("cod")) == scorer(page("cod"))
    assert content_scorer({"classifier": str(model)})(page("cod")) == scorer(page("cod"))


def test_the_class_that_is_sought(model, tmp_path):
    for positive in (2, "sea", [1], "", object()):
        with pytest.raises(
            ParameterError, match=r"positive: expected one of the classes of .*model.skops \(0, 1\)"
        ):
            Classifier(model, positive)
    three = make_pipeline(TfidfVectorizer(), LogisticRegression())
    dump(three.fit(SEA + LAND, ["sea"] * 4 + ["land"] * 2 + ["air"] * 2), tmp_path / "three.skops")
    with pytest.raises(ParameterError, match="air, land, sea"):
        Classifier(tmp_path / "three.skops")
    scorer = Classifier(tmp_path / "three.skops", "sea")
    assert scorer(page("cod")) > scorer(page("oak"))


def test_types_that_are_not_trusted_are_refused_by_name(tmp_path):
    path = tmp_path / "upper.skops"
    dump(trained([1, 0], Upper()), path)
    with pytest.raises(InputError, match=rf"upper.skops: .*not trusted: {__name__}\.Upper\. Use"):
        Classifier(path)
    dump(make_pipeline(FunctionTransformer(exec), TfidfVectorizer()), path)
    with pytest.raises(InputError, match=r"not trusted: builtins\.exec"):
        Classifier(path)


def test_objects_that_are_no_classifiers_of_texts_are_refused(tmp_path):
    path = tmp_path / "x.skops"
    numbers = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    no_chances = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(SEA + LAND, [1] * 4 + [0] * 4)
    unfitted = make_pipeline(TfidfVectorizer(), LogisticRegression())
    for thing in (numbers, no_chances, unfitted, TfidfVectorizer().fit(SEA), [1, 2], {"a": 3}):
        dump(thing, path)
        with pytest.raises(InputError, match=r"x\.skops: not a text classifier"):
            Classifier(path)


def test_files_that_are_no_models(tmp_path, monkeypatch, model):
    path = tmp_path / "x.skops"
    with pytest.raises(InputError, match=r"x\.skops: No such file"):
        Classifier(path)
    with pytest.raises(InputError, match="Is a directory"):
        Classifier(tmp_path)
    for content in (b"", b"\x80\x04\x95pickle", model.read_bytes()[:1000]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"x\.skops: not a skops model") as caught:
            Classifier(path)
        assert "\n" not in str(caught.value)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", '{"a":' * 50_000)
    with pytest.raises(InputError, match="not a skops model"):
        Classifier(path)
    monkeypatch.setattr(classifier, "MAX_MODEL", 100_000)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", " " * 100_001)
    with pytest.raises(InputError, match="bytes when unpacked"):
        Classifier(path)
    monkeypatch.setattr(classifier, "MAX_MODEL", 100)
    with pytest.raises(InputError, match="more than 100 bytes; save"):
        Classifier(path)


@given(st.data())
def test_damaged_models_are_refused_or_answer(model, tmp_path_factory, data):
    """The schema is what says which types are made; its bytes are changed, and the zip around it is whole."""
    path = tmp_path_factory.getbasetemp() / "damaged.skops"
    with zipfile.ZipFile(model) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = data.draw(st.sampled_from(sorted(members)))
    content = bytearray(members[name])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for each, whole in members.items():
            archive.writestr(each, bytes(content) if each == name else whole)
    path.write_bytes(packed.getvalue())
    try:
        scorer = Classifier(path, 1)
    except InlinkError:
        return
    assert isinstance(scorer(page("cod")), float)


def test_the_message_names_the_package_to_install(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'inlink\[classifier\]'"):
        Classifier(model)
