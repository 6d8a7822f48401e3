public import PrismProtocol

/// A conflict of two changes of one record, for the report about it.
public struct RecordClashNews: Sendable, Equatable {
  /// The namespace of the record.
  public var namespace: NamespaceName
  /// The record, and both sides.
  public var clash: RecordClash

  public init(namespace: NamespaceName, clash: RecordClash) { (self.namespace, self.clash) = (namespace, clash) }
}
