//! The slope of a series of samples, with its standard error.

use serde::Serialize;

/// The number of blocks. Samples that follow each other are alike, so that their scatter is too
/// small an error; the means of long blocks are nearly independent.
const BLOCKS: usize = 20;

/// The slope of a line of least squares, per second.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Slope {
    pub(super) slope: f64,
    /// The standard error.
    pub(super) error: f64,
}

impl Slope {
    /// Fits a line to the means of blocks of points, which are in the order of their time. The
    /// slope is not a number for fewer than 3 points.
    pub(super) fn of(points: &[(f64, f64)]) -> Self {
        let blocks: Vec<_> = points
            .chunks(points.len().div_ceil(BLOCKS).max(1))
            .map(mean)
            .collect();
        let count = blocks.len() as f64;
        let (mean_x, mean_y) = mean(&blocks);
        let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
            blocks
                .iter()
                .map(|(x, y)| term(x - mean_x, y - mean_y))
                .sum()
        };
        let squares = sum(&|x, _| x * x);
        let slope = sum(&|x, y| x * y) / squares;
        let residuals = sum(&|x, y| (y - slope * x).powi(2));
        Self {
            slope,
            error: (residuals / (count - 2.0) / squares).sqrt(),
        }
    }

    /// Returns whether the slope is more than two standard errors above zero.
    pub(super) fn is_positive(self) -> bool {
        self.slope > 2.0 * self.error
    }
}

fn mean(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let sum = points
        .iter()
        .fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    (sum.0 / count, sum.1 / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns points on a line with a bounded, fixed scatter.
    fn points(slope: f64, scatter: f64) -> Vec<(f64, f64)> {
        (0..1_000_u32)
            .map(|x| {
                (
                    f64::from(x),
                    slope * f64::from(x) + scatter * f64::from(x * 7_919 % 101) / 101.0,
                )
            })
            .collect()
    }

    #[test]
    fn a_line_has_its_slope_without_error() {
        let slope = Slope::of(&points(0.5, 0.0));
        assert!((slope.slope - 0.5).abs() < 1e-9, "{slope:?}");
        assert!(slope.error < 1e-9, "{slope:?}");
        assert!(slope.is_positive());
    }

    #[test]
    fn scatter_is_no_slope() {
        let slope = Slope::of(&points(0.0, 10.0));
        assert!(!slope.is_positive(), "{slope:?}");
        assert!(slope.error > 0.0, "{slope:?}");
        let falling = Slope::of(&points(-1.0, 10.0));
        assert!(!falling.is_positive(), "{falling:?}");
        assert!(falling.slope < -0.9, "{falling:?}");
    }

    #[test]
    fn a_leak_is_found_below_scatter() {
        let slope = Slope::of(&points(0.05, 10.0));
        assert!(slope.is_positive(), "{slope:?}");
        assert!((slope.slope - 0.05).abs() < 4.0 * slope.error, "{slope:?}");
    }
}
