//! What a handful of repeated measurements says: median, least, most.
//!
//! Refuses to know units, and to judge. Invariant: there is at least one value and each is a number, so every
//! answer exists. Infinity is a number: the skew of a burst that one worker took whole.

use anyhow::{Result, ensure};

/// Values of one quantity, in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Orders the values. None, and one that is not a number, is an error: nothing was measured.
    ///
    /// ```
    /// let rounds = probes::samples::Samples::of(vec![3.0, 1.0, 2.0])?;
    /// assert_eq!((rounds.median(), rounds.least(), rounds.most()), (2.0, 1.0, 3.0));
    /// # anyhow::Ok(())
    /// ```
    pub fn of(mut values: Vec<f64>) -> Result<Self> {
        ensure!(
            !values.is_empty(),
            "nothing was measured: there is no value"
        );
        ensure!(
            !values.iter().any(|value| value.is_nan()),
            "nothing was measured: a value is no number in {values:?}"
        );
        values.sort_by(f64::total_cmp);
        Ok(Self(values))
    }

    /// The middle value, or the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let half = self.0.len() / 2;
        if self.0.len() % 2 == 1 {
            self.0[half]
        } else {
            f64::midpoint(self.0[half - 1], self.0[half])
        }
    }

    /// The smallest.
    pub fn least(&self) -> f64 {
        self.0[0]
    }

    /// The largest.
    pub fn most(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// The smallest value that at least this share of all values does not exceed (nearest rank).
    ///
    /// ```
    /// let values = probes::samples::Samples::of((1..=200).map(f64::from).collect())?;
    /// assert_eq!((values.quantile(0.5), values.quantile(0.99)), (100.0, 198.0));
    /// # anyhow::Ok(())
    /// ```
    ///
    /// # Panics
    /// If `share` is not between 0 and 1.
    pub fn quantile(&self, share: f64) -> f64 {
        assert!((0.0..=1.0).contains(&share), "a share of {share}");
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0[rank.saturating_sub(1)]
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Each value times a share, as the time of a request times the kernel's part of it.
    pub fn times(&self, share: f64) -> Result<Self> {
        Self::of(self.0.iter().map(|value| value * share).collect())
    }
}

/// What was measured over how often it happened, as nanoseconds by requests. Nothing happened is an error.
pub fn per(measured: u64, times: u64) -> Result<f64> {
    ensure!(
        times > 0,
        "nothing was measured: what is to be divided by happened not once"
    );
    Ok(measured as f64 / times as f64)
}

/// The largest share over the smallest; infinite when somebody took nothing, an error when nobody took anything.
pub fn skew(shares: &[u64]) -> Result<f64> {
    let most = shares.iter().max().copied().unwrap_or(0);
    let least = shares.iter().min().copied().unwrap_or(0);
    ensure!(
        most > 0,
        "nothing was measured: no share of {} holds anything",
        shares.len()
    );
    Ok(most as f64 / least as f64)
}

#[cfg(test)]
#[expect(
    clippy::float_cmp,
    reason = "small whole numbers and their halves are exact"
)]
mod tests {
    use super::{Samples, per, skew};

    #[m0_spec::row(H39)]
    #[test]
    fn the_median_is_the_middle_of_any_order() {
        let cases: [(&[f64], f64, f64, f64); 4] = [
            (&[5.0], 5.0, 5.0, 5.0),
            (&[2.0, 1.0], 1.5, 1.0, 2.0),
            (&[9.0, 1.0, 2.0], 2.0, 1.0, 9.0),
            (&[4.0, 1.0, 3.0, 2.0], 2.5, 1.0, 4.0),
        ];
        for (values, median, least, most) in cases {
            let samples = Samples::of(values.to_vec()).expect("they are numbers");
            let got = [samples.median(), samples.least(), samples.most()];
            assert!(got == [median, least, most], "{values:?}: {got:?}");
            assert_eq!(samples.count(), values.len());
        }
    }

    #[m0_spec::row(H37)]
    #[test]
    fn no_value_and_no_number_are_errors() {
        assert!(Samples::of(vec![]).is_err());
        assert!(Samples::of(vec![1.0, f64::NAN]).is_err());
        assert!(per(7, 0).is_err(), "a division by no request is no figure");
        assert!(per(7, 2).is_ok_and(|figure| figure == 3.5));
        let halves = Samples::of(vec![1.0, 3.0]).and_then(|samples| samples.times(0.5));
        assert!(halves.is_ok_and(|halves| halves.median() == 1.0));
    }

    #[m0_spec::row(E51, H37)]
    #[test]
    fn a_share_of_nothing_is_infinite_and_no_share_at_all_is_an_error() {
        assert!(skew(&[16, 16]).is_ok_and(|ratio| ratio == 1.0));
        assert!(skew(&[24, 8]).is_ok_and(|ratio| ratio == 3.0));
        assert!(skew(&[32, 0]).is_ok_and(f64::is_infinite));
        assert!(skew(&[0, 0]).is_err() && skew(&[]).is_err());
    }
}
