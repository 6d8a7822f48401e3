/// The requests about records: the only field of their line.
public enum RecordVerb: String, Sendable, CaseIterable {
  case put, patch, delete, get, list, watch
}
