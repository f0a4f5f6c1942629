use super::*;

#[test]
fn record_call_created_and_started_nodes_open_and_confirm_plan() {
    let mut state = SessionState::default();
    let mut record = |change| {
        let call = SessionCall { session: String::from("s"), project: String::from("p"), change };
        call.record(&mut state, 0);
        state.has_unconfirmed_plan
    };
    assert!(record(CallChange::Created));
    assert!(record(CallChange::SavedFact));
    let (node, title) = (String::from("node-a"), String::from("T"));
    assert!(!record(CallChange::Moved { node, to: NodeStatus::Implementing, title }));
}
