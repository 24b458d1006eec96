from sklearn.utils.estimator_checks import parametrize_with_checks
from stct import LabelCorrector
@parametrize_with_checks([LabelCorrector()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)
