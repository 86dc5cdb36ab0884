//! The scenes that are measured.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::RIVALS;

/// The deputy's tick, in milliseconds.
const TICK: f64 = 1.0;
/// The time of a process besides the window, and the waits at its end.
const AROUND: Duration = Duration::from_millis(150);

/// The parameters of one scene.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scene {
    pub(super) workers: usize,
    /// The tasks that compute.
    pub(super) tasks: usize,
    /// How long they compute before they yield.
    pub(super) poll: Duration,
    /// Whether other tasks are always ready.
    pub(super) is_busy: bool,
    pub(super) window: Duration,
}

impl Scene {
    pub(super) fn poll_ms(&self) -> f64 {
        self.poll.as_secs_f64() * 1e3
    }

    /// Two ticks and two polls, in milliseconds.
    pub(super) fn limit_ms(&self) -> f64 {
        2.0 * TICK + 2.0 * self.poll_ms()
    }

    /// Whether the limit is what paceline claims as a bound.
    pub(super) fn is_bounded(&self) -> bool {
        self.tasks <= self.workers + 1
    }

    pub(super) fn name(&self) -> String {
        let busy = if self.is_busy { "-busy" } else { "" };
        format!("{}-{}-{}{busy}", self.workers, self.tasks, self.poll_ms())
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "workers": self.workers,
            "tasks": self.tasks,
            "poll_us": self.poll.as_micros() as u64,
            "is_busy": self.is_busy,
            "window_ms": self.window.as_millis() as u64,
        })
    }

    /// Returns `None` if the figures are of another kind.
    pub(super) fn from_json(value: &Value) -> Option<Scene> {
        let number = |name: &str| value[name].as_u64();
        Some(Scene {
            workers: number("workers")? as usize,
            tasks: number("tasks")? as usize,
            poll: Duration::from_micros(number("poll_us")?),
            is_busy: value["is_busy"].as_bool()?,
            window: Duration::from_millis(number("window_ms")?),
        })
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (workers, tasks) = (self.workers, self.tasks);
        write!(f, "{workers} worker{}, {tasks} task{}", plural(workers), plural(tasks))?;
        write!(f, " with polls of {} ms", self.poll_ms())?;
        if self.is_busy { f.write_str(", beside tasks that are always ready") } else { Ok(()) }
    }
}

/// The numbers of workers, and for each length of a poll the numbers of tasks. Each scene is without and with
/// tasks that are always ready.
pub(super) struct Matrix {
    workers: &'static [usize],
    polls: Vec<(Duration, &'static [usize])>,
    shortest: Duration,
}

impl Matrix {
    pub(super) fn full() -> Matrix {
        const FEW: &[usize] = &[1, 3, 8];
        const MANY: &[usize] = &[1, 2, 3, 5, 8, 16];
        Matrix {
            workers: &[1, 2, 4],
            // Fewer where a scene takes long, and where a poll is so short that no runtime takes note of it.
            polls: vec![
                (Duration::from_micros(100), FEW),
                (Duration::from_millis(1), MANY),
                (Duration::from_millis(10), MANY),
                (Duration::from_millis(100), MANY),
                (Duration::from_millis(1_000), FEW),
            ],
            shortest: Duration::from_secs(2),
        }
    }

    pub(super) fn quick() -> Matrix {
        Matrix {
            workers: &[2],
            polls: vec![(Duration::from_millis(1), &[2, 8]), (Duration::from_millis(10), &[2, 8])],
            shortest: Duration::from_millis(1_500),
        }
    }

    pub(super) fn scenes(&self) -> Vec<Scene> {
        let mut scenes = Vec::new();
        for &workers in self.workers {
            for &(poll, tasks) in &self.polls {
                let window = self.shortest.max(poll * 8);
                for &tasks in tasks {
                    let scene = |is_busy| Scene { workers, tasks, poll, is_busy, window };
                    scenes.extend([false, true].map(scene));
                }
            }
        }
        scenes
    }

    /// Returns how long all scenes take, if the last wait of each ends with the round of the tasks.
    pub(super) fn time(&self) -> String {
        let one =
            |scene: &Scene| scene.window + AROUND + scene.poll * scene.tasks.div_ceil(scene.workers) as u32;
        let all: Duration = self.scenes().iter().map(one).sum();
        let seconds = (all * RIVALS.len() as u32).as_secs();
        if seconds < 120 { format!("{seconds} s") } else { format!("{} minutes", seconds.div_ceil(60)) }
    }
}

/// The words of the README.
impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &[usize]| values.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let polls: Vec<String> = self
            .polls
            .chunk_by(|one, next| one.1 == next.1)
            .map(|chunk| {
                let times: Vec<_> =
                    chunk.iter().map(|(poll, _)| (poll.as_secs_f64() * 1e3).to_string()).collect();
                format!("{} tasks with polls of {} ms", list(chunk[0].1), times.join(", "))
            })
            .collect();
        write!(f, "{} workers x ({})", list(self.workers), polls.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the README describes another matrix, or another time, than the two runs have.
    #[test]
    #[cfg(feature = "paceline")]
    fn the_readme_has_the_matrix_and_its_time() {
        const README: &str = include_str!("../../../README.md");
        for matrix in [Matrix::full(), Matrix::quick()] {
            let time = format!("{} scenes, {}", matrix.scenes().len(), matrix.time());
            for text in [matrix.to_string(), time] {
                assert!(README.contains(&text), "not in the README: {text}");
            }
        }
    }

    #[test]
    fn a_quick_run_has_only_scenes_of_the_full_one() {
        let full: Vec<_> = Matrix::full().scenes().iter().map(Scene::name).collect();
        assert!(Matrix::quick().scenes().iter().all(|scene| full.contains(&scene.name())));
        let mut different = full.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), full.len());
    }

    #[test]
    fn a_scene_is_read_as_it_was_written() {
        for scene in Matrix::full().scenes() {
            assert_eq!(Scene::from_json(&scene.to_json()), Some(scene));
        }
        assert_eq!(Scene::from_json(&json!({ "workers": 1 })), None);
    }

    #[test]
    fn the_limit_is_two_ticks_and_two_polls() {
        let scenes = Matrix::full().scenes();
        let limits: Vec<_> = scenes.iter().map(|scene| (scene.poll_ms(), scene.limit_ms())).collect();
        for limit in [(0.1, 2.2), (1.0, 4.0), (10.0, 22.0), (100.0, 202.0), (1_000.0, 2_002.0)] {
            assert!(limits.contains(&limit), "{limit:?}");
        }
        let bounded = |tasks| Scene { workers: 2, tasks, ..scenes[0].clone() }.is_bounded();
        assert_eq!([2, 3, 5].map(bounded), [true, true, false]);
    }
}
