import PrismProtocol

/// Records of one table: those of a device, or those that all devices of the fleet read.
struct RecordPlace: Hashable, Sendable {
  var namespace: NamespaceName
  var table: RecordTableName
  /// nil: the fleet's.
  var device: String?

  /// As the stores keep it: empty for the fleet.
  var owner: String { device ?? "" }
}
