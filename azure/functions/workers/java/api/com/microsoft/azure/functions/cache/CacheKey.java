package com.microsoft.azure.functions.cache;

/** A key of an {@link ObjectCache}. */
public interface CacheKey {}
