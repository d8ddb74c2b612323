//! Formulas, each with its source; nothing here knows about trees or threads.
