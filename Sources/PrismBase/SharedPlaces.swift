/// Places that the users of a machine share, as the groups of a namespace and the records of a table. Pure.
///
/// One user may fill them. Others still have a sixteenth of them each then, and a quarter together.
public struct SharedPlaces: Sendable {
  /// Those that one user may fill, from 1 on.
  public let most: Int

  /// - Parameter most: those that one user may fill, from 1 on.
  public init(most: Int) { self.most = most }

  /// Those of a user where one has filled them.
  public var share: Int { (most + 15) / 16 }

  /// Whether a user may take more.
  /// - Parameters:
  ///   - amount: how many more.
  ///   - taken: by all users.
  ///   - own: by this one; it is looked up only if the others are filled. - Throws: what `own` throws.
  public func hasRoom<Failure: Error>(
    for amount: Int = 1, taken: Int, own: () throws(Failure) -> Int
  ) throws(Failure) -> Bool {
    if taken + amount <= most { return true }
    guard taken + amount <= most + (most + 3) / 4 else { return false }
    return try own() + amount <= share
  }
}
