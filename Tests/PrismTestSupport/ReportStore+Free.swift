public import PrismStore

extension ReportStore {
  /// Opens the folder once the store before is let go of: its queue may still turn for a moment.
  /// - Throws: as `open` does; `locked` after 30 s.
  public static func openOnceFree(_ options: StoreOptions) async throws -> ReportStore {
    let deadline = ContinuousClock.now + .seconds(30)
    while true {
      do { return try await open(options) } catch {
        guard error == .locked(folder: options.folder), ContinuousClock.now < deadline else { throw error }
      }
      await Task.yield()
    }
  }
}
