/// The order in which rows of a namespace and kind leave: crashes, then realtime types, then the rest
/// (docs/delivery.md).
/// A row's priority is fixed when it is stored; it is the top bits of its id, so that the order of ids is the order of leaving.
public enum Priority: Int, Sendable, CaseIterable {
  case crash, realtime, rest
}
