// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/loaded_model.h"
