//! How long gates ran, and how well they ran beside each other.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The time of the gates that one build for all rules served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Rules that were judged.
    pub rules: usize,
    /// The most gates at once.
    pub jobs: usize,
    /// Sum of the gates' own times, in seconds.
    pub gates: f64,
    /// That sum divided by the jobs, phase by phase: what it must take at least.
    pub least: f64,
    /// What it took, builds not counted.
    pub wall: f64,
}

impl Pace {
    /// Adds a phase of `rules` judged by so many jobs.
    pub(super) fn add(&mut self, rules: usize, jobs: usize, gates: Duration, wall: Duration) {
        self.rules += rules;
        self.jobs = self.jobs.max(jobs);
        self.gates += gates.as_secs_f64();
        self.least += gates.as_secs_f64() / jobs.max(1) as f64;
        self.wall += wall.as_secs_f64();
    }

    /// Adds another run's.
    pub fn join(&mut self, other: &Self) {
        self.rules += other.rules;
        self.jobs = self.jobs.max(other.jobs);
        self.gates += other.gates;
        self.least += other.least;
        self.wall += other.wall;
    }

    /// What it took in terms of the least; 1 when nothing ran.
    pub fn ratio(&self) -> f64 {
        if self.least > 0.0 {
            self.wall / self.least
        } else {
            1.0
        }
    }
}
