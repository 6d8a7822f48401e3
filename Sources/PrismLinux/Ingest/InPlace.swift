/// Holds a large value where it is. To compare an optional value with nil, or to look at one member of it, copies all of it;
/// this is only a reference then.
///
/// Only its server's thread uses it, and every use ends before the next one begins; so no access is noted while the
/// program runs. Thirty accesses a report were noted before.
final class InPlace<Value> {
  @exclusivity(unchecked) var value: Value
  init(_ value: Value) { self.value = value }
}
