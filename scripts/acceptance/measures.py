"""Means of pairs with their 95 % interval, and what two lists of numbers have in common."""

import math
import statistics

# Student's t, two-sided 95 %, for 1 to 30 degrees of freedom; beyond, the normal distribution's.
T95 = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
       2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04]
NORMAL95 = 1.96


class Interval:
    """A mean and its 95 % confidence interval."""

    def __init__(self, mean, half):
        self.mean, self.half = mean, half

    low = property(lambda self: self.mean - self.half)
    high = property(lambda self: self.mean + self.half)

    def overlaps(self, low, high):
        return self.low <= high and low <= self.high

    def text(self, unit, digits=2):
        return f"{self.mean:+.{digits}f} {unit} [{self.low:+.{digits}f}, {self.high:+.{digits}f}]"


def mean_of(values):
    """Of at least two values."""
    freedom = len(values) - 1
    t = T95[freedom - 1] if freedom <= len(T95) else NORMAL95
    return Interval(statistics.mean(values), t * statistics.stdev(values) / math.sqrt(len(values)))


def list_of(values, unit):
    return ", ".join(f"{value:.2f}" for value in values) + f" {unit}"


def relative_percent(changed, plain):
    """Of pairs that ran one after the other: how much longer the changed ones took, in percent."""
    return mean_of([100 * (c - p) / p for c, p in zip(changed, plain)])


def differences(first, second):
    return mean_of([a - b for a, b in zip(first, second)])
