/// The use of metered networks in the current window of 24 h, as `prismctl status` shows it.
struct FlowUse: Sendable {
  var usedBytes: Int
  var allowedBytes: Int
  var windowEndsIn: Duration
}
