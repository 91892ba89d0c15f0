//! Each component in each situation that has points of its own.

use system_tests::crew::Consumers;

/// A component in a situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Producer,
    ProducerAgain,
    Relay,
    RelayShutOut,
    RelayRecovering,
    RelayLingering,
    RelayInTrouble,
    RelayPostponing,
    RelayWithBadEvents,
    Consumer,
    ConsumerOfSuspects,
    ConsumerOutOfTime,
    Collector,
    CollectorCorrecting,
    News,
    NewsRevised,
    Price,
    PriceReplacing,
    PriceWithdrawing,
    Explain,
    DeadLetter,
    Reconciler,
    Redrive,
    Dismiss,
}

impl Case {
    pub const ALL: [Self; 24] = [
        Self::Producer,
        Self::ProducerAgain,
        Self::Relay,
        Self::RelayShutOut,
        Self::RelayRecovering,
        Self::RelayLingering,
        Self::RelayInTrouble,
        Self::RelayPostponing,
        Self::RelayWithBadEvents,
        Self::Consumer,
        Self::ConsumerOfSuspects,
        Self::ConsumerOutOfTime,
        Self::Collector,
        Self::CollectorCorrecting,
        Self::News,
        Self::NewsRevised,
        Self::Price,
        Self::PriceReplacing,
        Self::PriceWithdrawing,
        Self::Explain,
        Self::DeadLetter,
        Self::Reconciler,
        Self::Redrive,
        Self::Dismiss,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Producer => "points: producer",
            Self::ProducerAgain => "points: producer, jobs known",
            Self::Relay => "points: relay",
            Self::RelayShutOut => "points: relay, lanes backing off",
            Self::RelayRecovering => "points: relay, lanes recovering",
            Self::RelayLingering => "points: relay, lingering",
            Self::RelayInTrouble => "points: relay, queue missing",
            Self::RelayPostponing => "points: relay, entries failing",
            Self::RelayWithBadEvents => "points: relay, events refused for ever",
            Self::Consumer => "points: consumer",
            Self::ConsumerOfSuspects => "points: consumer, jobs tried before",
            Self::ConsumerOutOfTime => "points: consumer, no time to start",
            Self::Collector => "points: collector",
            Self::CollectorCorrecting => "points: collector, correcting",
            Self::News => "points: news-consumer",
            Self::NewsRevised => "points: news-consumer, revised item",
            Self::Price => "points: price-consumer",
            Self::PriceReplacing => "points: price-consumer, replacing a trigger",
            Self::PriceWithdrawing => "points: price-consumer, withdrawing one",
            Self::Explain => "points: explain-consumer",
            Self::DeadLetter => "points: dead-letter",
            Self::Reconciler => "points: reconciler",
            Self::Redrive => "points: operator, redrive",
            Self::Dismiss => "points: operator, dismiss",
        }
    }

    /// The executable that is struck.
    pub fn component(self) -> &'static str {
        match self {
            Self::Producer
            | Self::ProducerAgain
            | Self::Consumer
            | Self::ConsumerOfSuspects
            | Self::ConsumerOutOfTime => "subject",
            Self::Relay
            | Self::RelayShutOut
            | Self::RelayRecovering
            | Self::RelayLingering
            | Self::RelayInTrouble
            | Self::RelayPostponing
            | Self::RelayWithBadEvents => "relay",
            Self::Collector | Self::CollectorCorrecting => "collector",
            Self::News | Self::NewsRevised => "news-consumer",
            Self::Price | Self::PriceReplacing | Self::PriceWithdrawing => "price-consumer",
            Self::Explain => "explain-consumer",
            Self::DeadLetter => "dead-letter",
            Self::Reconciler => "reconciler",
            Self::Redrive | Self::Dismiss => "operator",
        }
    }

    /// Where its work comes from.
    pub fn source(self) -> Source {
        match self {
            Self::Consumer
            | Self::ConsumerOfSuspects
            | Self::ConsumerOutOfTime
            | Self::News
            | Self::NewsRevised
            | Self::Price
            | Self::PriceReplacing
            | Self::PriceWithdrawing
            | Self::Explain => Source::Queue,
            Self::DeadLetter => Source::DeadLetters,
            _ => Source::Event,
        }
    }

    /// Only functions have somebody who goes on without them.
    pub fn can_freeze(self) -> bool {
        !matches!(self, Self::Producer | Self::ProducerAgain)
    }

    pub fn consumers(self) -> Consumers {
        if self.has_market() { Consumers::Product } else { Consumers::Subject }
    }

    pub fn has_market(self) -> bool {
        matches!(
            self,
            Self::Collector
                | Self::CollectorCorrecting
                | Self::News
                | Self::NewsRevised
                | Self::Price
                | Self::PriceReplacing
                | Self::PriceWithdrawing
                | Self::Explain
        )
    }
}

/// Where the work of a component comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Queue,
    DeadLetters,
    Event,
}
