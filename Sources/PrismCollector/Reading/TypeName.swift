/// A type of a namespace.
struct TypeName: Sendable, Equatable, Hashable {
  var namespace: String, type: String
}
