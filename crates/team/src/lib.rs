//! A machine of a team: the client of its server, and the replica of its projects in the layout of local ones.
