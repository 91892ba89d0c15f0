//! What the papers wrote: a headline shortly before each shock that has a story, and plenty that has
//! nothing to do with any price.
//!
//! One item appears in two feeds and one is edited by its publisher, because real ones do that.

use super::market::{Shock, Story};
use super::{COMPANIES, MINUTES};

/// Headlines that explain nothing, about the world at large.
const WORLD: [&str; 24] = [
    "Ferry timetable changes for the spring season",
    "City library extends its opening hours",
    "Heavy rain expected along the northern coast",
    "Old lighthouse to become a museum",
    "School orchestra wins national competition",
    "Botanists describe a new alpine flower",
    "Marathon route to cross the harbour bridge",
    "Farmers report an early cherry harvest",
    "Tram line closed for track work this weekend",
    "Chess club celebrates its hundredth birthday",
    "Observatory opens its doors for the eclipse",
    "Bakers argue about the right way to score bread",
    "Volunteers plant ten thousand trees",
    "Film festival announces its opening night",
    "Mountain hut rebuilt after the winter storms",
    "Bicycle counter passes one million riders",
    "Archaeologists find a Roman well under car park",
    "Swimming pool reopens with solar heating",
    "Village choir tours the islands",
    "Beekeepers expect a good year",
    "Night trains return to the southern route",
    "Puppet theatre finds a new home",
    "Glacier path closed until June",
    "Street market moves to the old town square",
];

/// Headlines that name a company and still explain nothing.
const PASSING: [&str; 8] = [
    "{name} opens a visitor centre at its headquarters",
    "{name} sponsors the regional rowing regatta",
    "Former {name} engineer publishes a cook book",
    "{name} staff clean up the river bank",
    "{name} moves its archive to a new building",
    "Photo exhibition shows fifty years of {name}",
    "{name} choir performs at the town hall",
    "Canteen of {name} wins a prize for its soup",
];

/// One item of one or more feeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// The publisher's own name for it.
    pub guid: String,
    /// The minute it came out in.
    pub minute: u32,
    /// Its title.
    pub title: String,
    /// Its text, HTML as feeds have it.
    pub body: String,
    /// Whether the second feed carries it as well.
    pub syndicated: bool,
    /// Which feed it belongs to, an index into the feeds.
    pub feed: usize,
    /// The minute its publisher edited it in, and the new title.
    pub edited: Option<(u32, String)>,
}

impl Headline {
    /// The title as it reads in `minute`.
    #[must_use]
    pub fn title_in(&self, minute: u32) -> &str {
        match &self.edited {
            Some((since, title)) if *since <= minute => title,
            _ => &self.title,
        }
    }

    /// Whether it came out or was edited in `minute`.
    #[must_use]
    pub fn changes_in(&self, minute: u32) -> bool {
        self.minute == minute || self.edited.as_ref().is_some_and(|(edited, _)| *edited == minute)
    }
}

/// The session's headlines, by the minute they came out.
pub fn write(random: &mut fastrand::Rng, shocks: &[Shock]) -> Vec<Headline> {
    let mut headlines: Vec<Headline> = shocks.iter().filter_map(|shock| explain(random, shock)).collect();
    headlines[0].syndicated = true;
    headlines.extend(WORLD.iter().flat_map(|title| [*title, *title]).enumerate().map(|(index, title)| {
        let title = if index % 2 == 0 { title.to_owned() } else { format!("Readers' letters: {title}") };
        let minute = random.u32(1..MINUTES - 5);
        plain(title, minute, index % 2)
    }));
    headlines.extend(PASSING.iter().enumerate().map(|(company, title)| pass(random, shocks, company, title)));

    let edited = headlines.len() - 1;
    let corrected = format!("{} (corrected)", headlines[edited].title);
    headlines[edited].edited = Some((headlines[edited].minute + 3, corrected));

    headlines.sort_by(|one, other| (one.minute, &one.title).cmp(&(other.minute, &other.title)));
    for (number, headline) in headlines.iter_mut().enumerate() {
        headline.guid = format!("urn:rehearsal:{number:03}");
    }
    headlines
}

/// The headline before `shock`, two to four minutes earlier, if it has a story.
fn explain(random: &mut fastrand::Rng, shock: &Shock) -> Option<Headline> {
    let title = tell(shock.story?, shock.basis_points > 0).replace("{name}", COMPANIES[shock.company].name);
    Some(plain(title, shock.minute - random.u32(2..=4), 0))
}

fn tell(story: Story, good: bool) -> &'static str {
    match (story, good) {
        (Story::Earnings, true) => "{name} quarterly earnings beat expectations by a wide margin",
        (Story::Earnings, false) => "{name} quarterly earnings miss expectations",
        (Story::Guidance, true) => "{name} raises its full-year guidance",
        (Story::Guidance, false) => "{name} cuts its full-year guidance",
        (Story::Merger, true) => "{name} agrees to a merger with Ostermark Holdings at a premium",
        (Story::Merger, false) => "Merger of {name} and Ostermark Holdings is called off",
        (Story::Rating, true) => "Analysts at Lorne & Pike upgrade {name} to buy",
        (Story::Rating, false) => "Analysts at Lorne & Pike downgrade {name} to sell",
        (Story::Legal, true) => "Court dismisses the lawsuit against {name}",
        (Story::Legal, false) => "Regulator files a lawsuit against {name} after its investigation",
        (Story::Product, true) => "{name} launches a new product line ahead of schedule",
        (Story::Product, false) => "{name} announces a product recall",
    }
}

/// A headline that names `company` after its own shocks, so that it can not be taken for their cause.
fn pass(random: &mut fastrand::Rng, shocks: &[Shock], company: usize, title: &str) -> Headline {
    let last =
        shocks.iter().filter(|shock| shock.company == company).map(|shock| shock.minute).max().unwrap_or(0);
    let minute = random.u32(last + 5..MINUTES - 5);
    plain(title.replace("{name}", COMPANIES[company].name), minute, 1)
}

fn plain(title: String, minute: u32, feed: usize) -> Headline {
    let body = format!(
        "<p>{}.</p><p>Details were given in a short statement. <em>More to follow.</em></p>",
        title.replace('&', "&amp;")
    );
    Headline { guid: String::new(), minute, title, body, syndicated: false, feed, edited: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Scenario;

    #[test]
    fn every_story_is_out_before_its_shock() {
        for seed in 0..20 {
            let scenario = Scenario::new(seed);
            for shock in scenario.shocks().iter().filter(|shock| shock.story.is_some()) {
                let name = COMPANIES[shock.company].name;
                let told = scenario.headlines().iter().any(|headline| {
                    headline.title.contains(name)
                        && (2..=4).contains(&shock.minute.saturating_sub(headline.minute))
                });
                assert!(told, "seed {seed}: {shock:?}");
            }
        }
    }

    #[test]
    fn nothing_names_a_company_before_a_shock_that_nothing_explains() {
        for seed in 0..20 {
            let scenario = Scenario::new(seed);
            for shock in scenario.shocks().iter().filter(|shock| shock.story.is_none()) {
                let name = COMPANIES[shock.company].name;
                let mut before =
                    scenario.headlines().iter().filter(|headline| headline.minute <= shock.minute);
                assert!(!before.any(|headline| headline.title.contains(name)), "seed {seed}: {shock:?}");
            }
        }
    }

    #[test]
    fn one_item_is_in_two_feeds_and_one_is_edited() {
        let scenario = Scenario::new(11);
        assert_eq!(scenario.headlines().iter().filter(|headline| headline.syndicated).count(), 1);
        assert_eq!(scenario.headlines().iter().filter(|headline| headline.edited.is_some()).count(), 1);
    }
}
