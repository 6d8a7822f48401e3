/// Holds a large value where it is. To compare an optional value with nil, or to look at one member of it, copies all of it;
/// this is only a reference then.
final class InPlace<Value> {
  var value: Value
  init(_ value: Value) { self.value = value }
}
